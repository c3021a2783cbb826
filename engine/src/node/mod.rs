//! What a node is: the traits that kinds implement, and the registry that lists them.
