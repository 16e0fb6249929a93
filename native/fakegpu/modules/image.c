/* How much device memory a module's image takes: its bytes, and what its uninitialised sections
 * (.nv.global) ask for beside. Kinds: cubin (ELF), fat binary (bare or in nvcc's wrapper), PTX
 * text. */
#define _GNU_SOURCE
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modules/image.h"

struct wrapper {
    uint32_t magic, version;
    const void *data;
    void *file_name;
};
struct fatbin {
    uint32_t magic;
    uint16_t version, header_bytes;
    uint64_t body_bytes;
};

static uint64_t elf_bytes(const unsigned char *image)
{
    Elf64_Ehdr header;
    memcpy(&header, image, sizeof header);
    uint64_t end = header.e_shoff + (uint64_t)header.e_shnum * header.e_shentsize, zeroed = 0;
    uint64_t programs = header.e_phoff + (uint64_t)header.e_phnum * header.e_phentsize;
    if (header.e_ident[EI_CLASS] != ELFCLASS64)
        return 0;
    if (programs > end)
        end = programs;
    for (unsigned i = 0; header.e_shoff && i < header.e_shnum; i++) {
        Elf64_Shdr section;
        memcpy(&section, image + header.e_shoff + (uint64_t)i * header.e_shentsize, sizeof section);
        if (section.sh_type == SHT_NOBITS)
            zeroed += section.sh_size;
        else if (section.sh_offset + section.sh_size > end)
            end = section.sh_offset + section.sh_size;
    }
    return end + zeroed;
}

/* Of a file whose end is missing: what the driver refuses to load. */
static int is_cut(const unsigned char *image, uint64_t size)
{
    Elf64_Ehdr header;
    uint32_t magic;
    if (size < sizeof header || memcmp(image, ELFMAG, SELFMAG)) {
        memcpy(&magic, image, sizeof magic);
        return magic == 0x466243b1 || !memcmp(image, ELFMAG, SELFMAG);
    }
    memcpy(&header, image, sizeof header);
    return header.e_shoff > size ||
           size - header.e_shoff < (uint64_t)header.e_shnum * header.e_shentsize;
}

uint64_t fg_image_bytes(const void *image)
{
    uint32_t magic;
    if (!image || strnlen(image, 4) < 4)
        return 0;
    memcpy(&magic, image, sizeof magic);
    if (magic == 0x466243b1) {
        struct wrapper wrapper;
        memcpy(&wrapper, image, sizeof wrapper);
        return fg_image_bytes(wrapper.data);
    }
    if (magic == 0xba55ed50) {
        struct fatbin fatbin;
        memcpy(&fatbin, image, sizeof fatbin);
        return fatbin.header_bytes + fatbin.body_bytes;
    }
    if (!memcmp(image, ELFMAG, SELFMAG))
        return elf_bytes(image);
    return strstr(image, ".version") ? strlen(image) : 0;
}

uint64_t fg_image_file_bytes(const char *path)
{
    FILE *file = path ? fopen(path, "re") : NULL;
    if (!file)
        return 0;
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    uint64_t bytes = 0;
    char *text = size > 0 ? calloc(1, (size_t)size + 64) : NULL;
    if (text && fread(text, 1, (size_t)size, file) == (size_t)size &&
        !is_cut((unsigned char *)text, (uint64_t)size))
        bytes = fg_image_bytes(text);
    free(text);
    fclose(file);
    return bytes;
}
