/* How much device memory a module's image takes: its bytes, and what its uninitialised sections
 * (.nv.global) or its PTX variables ask for beside. Kinds: cubin (ELF), fat binary (bare or in nvcc's
 * wrapper; the image that suits the GPUs), PTX text. */
#define _GNU_SOURCE
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modules/image.h"
#include "state/state.h"

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

/* Variables of PTX, one to a line: `[.visible] .global .align N .TYPE name[count];` */
static uint64_t ptx_bytes(const char *text, size_t length)
{
    uint64_t sum = strnlen(text, length);
    char *copy = strndup(text, length), *rest = copy;
    for (char *line; copy && (line = strsep(&rest, "\n"));) {
        char *comment = strstr(line, "//"), *found, *dimension;
        if (comment)
            *comment = 0;
        found = strstr(line, ".global ");
        unsigned bits;
        char letter;
        if (!found || strstr(line, ".extern") || strchr(line, '(') ||
            sscanf(found, ".global .align %*u .%c%u", &letter, &bits) != 2)
            continue;
        uint64_t bytes = bits / 8;
        for (dimension = strchr(found, '['); dimension; dimension = strchr(dimension + 1, '['))
            bytes *= strtoull(dimension + 1, NULL, 0);
        sum += bytes;
    }
    free(copy);
    return sum;
}

/* Of a fat binary's images that for the newest architecture that the GPUs are not older than, a
 * cubin of their generation before PTX; packed ones count unpacked. 0: none suits. */
static uint64_t suiting_bytes(const unsigned char *body, uint64_t size)
{
    const struct fg_profile *profile = &fg_state->gpu[0].profile;
    uint32_t own = (uint32_t)(profile->capability_major * 10 + profile->capability_minor), best = 0;
    uint64_t bytes = 0;
    while (size >= 64) {
        uint16_t kind;
        uint32_t header, packed, arch;
        uint64_t length, unpacked;
        memcpy(&kind, body, 2), memcpy(&header, body + 4, 4), memcpy(&length, body + 8, 8);
        memcpy(&packed, body + 16, 4), memcpy(&arch, body + 28, 4), memcpy(&unpacked, body + 56, 8);
        if (kind < 1 || kind > 2 || header < 64 || header > size || length > size - header)
            break;
        uint32_t rank = arch + (kind == 2 ? 1000 : 0);
        if (arch <= own && (kind == 1 || arch / 10 == own / 10) && rank > best) {
            best = rank;
            bytes = packed      ? unpacked
                    : kind == 2 ? elf_bytes(body + header)
                                : ptx_bytes((const char *)body + header, length);
        }
        body += header + length, size -= header + length;
    }
    return bytes;
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
        uint64_t suiting =
            suiting_bytes((const unsigned char *)image + fatbin.header_bytes, fatbin.body_bytes);
        return suiting ? suiting : fatbin.header_bytes + fatbin.body_bytes;
    }
    if (!memcmp(image, ELFMAG, SELFMAG))
        return elf_bytes(image);
    return strstr(image, ".version") ? ptx_bytes(image, strlen(image)) : 0;
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
