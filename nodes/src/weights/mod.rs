//! Weight files: safetensors, zip and legacy torch pickles, Hugging Face folders.
