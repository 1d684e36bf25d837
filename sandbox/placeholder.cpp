namespace skein {}
