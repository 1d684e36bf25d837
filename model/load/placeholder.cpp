namespace skein::model {}
