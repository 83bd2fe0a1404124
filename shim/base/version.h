/* The version of the library, which stands nowhere else. */
#ifndef CUSPLICE_BASE_VERSION_H
#define CUSPLICE_BASE_VERSION_H

#define CUSPLICE_VERSION "0.1.0"

#endif
