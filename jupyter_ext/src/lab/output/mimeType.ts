/** MIME type of what names the view; the kernel puts it beside the widget, the HTML, the picture and the text. */
export const VIEW_MIME_TYPE = 'application/vnd.det-native.view+json';
