// SPDX-License-Identifier: MIT
// leaf in middle in outer, all inlined into work, and nearly all of the time.
#include <stdio.h>
#include <stdlib.h>

#define ALWAYS static inline __attribute__((always_inline))

ALWAYS unsigned leaf(unsigned x)
{
	for (int i = 0; i < 64; i++)
		x = x * 1664525u + 1013904223u;
	return x;
}

ALWAYS unsigned middle(unsigned x)
{
	return leaf(x) ^ leaf(x + 1);
}

ALWAYS unsigned outer(unsigned x)
{
	return middle(x) + 1;
}

__attribute__((noinline)) unsigned work(unsigned n)
{
	unsigned sum = 0;

	for (unsigned i = 0; i < n; i++)
		sum += outer(i);
	return sum;
}

int main(int argc, char **argv)
{
	printf("%u\n", work(argc > 1 ? (unsigned)atoi(argv[1]) : 1));
	return 0;
}
