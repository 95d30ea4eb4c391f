"""Where bytes lie: paths, opening, inflating, bytes by range. Local files, and objects in stores."""
