"""What an observation is made of, by value: pictures, the marks in them, elements in reading order, trees as text."""
