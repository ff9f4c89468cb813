#include "crudd_plugin.h"
