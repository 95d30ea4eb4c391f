"""Programs that show how Penstock is used, written with its public API; `penstock demo` runs `flowers`."""
