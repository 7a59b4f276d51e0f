"""What memory is made of and the rules it keeps: no input or output; everybody may import it."""
