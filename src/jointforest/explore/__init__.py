"""A page in the browser that shows a joint: what is asked, what is answered, and a small server on this machine."""
