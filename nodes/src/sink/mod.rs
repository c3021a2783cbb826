//! Where rows end up.
