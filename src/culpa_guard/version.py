"""The guard's version, which every file that it writes names."""

VERSION = "0.1.0"
