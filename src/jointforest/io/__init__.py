"""Tables in files and pipes, answers as text, and data sets that come with the package."""
