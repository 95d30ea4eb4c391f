"""Where bytes lie: paths, opening, inflating, bytes by range. Local files; object stores may come later."""
