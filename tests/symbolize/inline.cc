// SPDX-License-Identifier: MIT
// Much that is inlined: templates, lambdas, recursion of templates, a loop that
// keeps a CPU busy in known functions.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>
#include <string>
#include <vector>

struct Entry {
	int x;
	std::string text;
	bool operator<(const Entry &o) const { return x < o.x; }
};

template <class T> static T square(T v) { return v * v; }

static inline int weigh(const std::vector<Entry> &all)
{
	return std::accumulate(all.begin(), all.end(), 0,
			       [](int sum, const Entry &e) {
				       return sum + square(e.x) +
					      (int)e.text.size();
			       });
}

namespace deep {
template <int N> struct Ring {
	static int turn(int x) { return Ring<N - 1>::turn(x * N) + x; }
};
template <> struct Ring<0> {
	static int turn(int x) { return x ^ 3; }
};
} // namespace deep

__attribute__((noinline)) int fill(int n, std::map<std::string, int> &seen)
{
	std::vector<Entry> all;

	for (int i = 0; i < n; i++) {
		all.push_back({ i * 7919 % 101, std::string(i % 20, 'a') });
		seen[all.back().text] += deep::Ring<5>::turn(i);
	}
	std::sort(all.begin(), all.end());
	std::stable_sort(all.begin(), all.end(),
			 [](const Entry &a, const Entry &b) {
				 return a.text < b.text;
			 });
	return weigh(all);
}

int main(int argc, char **argv)
{
	std::map<std::string, int> seen;
	int sum = 0, rounds = argc > 1 ? atoi(argv[1]) : 1;

	while (rounds--)
		sum += fill(1000, seen);
	for (auto &pair : seen)
		sum ^= pair.second;
	printf("%d\n", sum);
	return 0;
}
