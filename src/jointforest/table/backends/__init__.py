"""One file a library of frames: taken apart into `cells.FrameReader`, built again from numbers and codes."""
