"""How experiments and trials look: text, HTML, figures, progress bars. Importing it makes handles show themselves."""

from det_native.client.rendering import register
from det_native.display.renderer import DisplayRenderer, show_live

register(DisplayRenderer())
show_live()
