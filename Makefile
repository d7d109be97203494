# Tally's front door. The two commands that need nothing before them, on Debian 12:
#   make demo     install what is missing, build, profile sqlite3 on a real workload, print who owned the memory
#   make check    install what is missing, build, run every test
# The rest is CMake: see CMakePresets.json and CONTRIBUTING.md.

BUILD ?= build
PREFIX ?= /usr/local
JOBS ?= $(shell nproc 2>/dev/null || echo 2)
# CI and slow machines may pass more, e.g. CTEST_FLAGS='-R offline'
CTEST_FLAGS ?=
CMAKE_FLAGS ?=

.PHONY: all build demo check install format lint clean help needs-build needs-demo needs-test

all: build

help:
	@sed -n 's/^#   make/make/p' Makefile
	@echo 'make build    configure and compile into $(BUILD)/'
	@echo 'make install  into PREFIX=$(PREFIX); honours DESTDIR'
	@echo 'make format   clang-format over the tree'
	@echo 'make lint     the laws that read the sources, without the other tests'
	@echo 'make clean    remove $(BUILD)/'

needs-build:
	@tools/install-packages build
needs-demo:
	@tools/install-packages build demo
needs-test:
	@tools/install-packages build demo test

# In one recipe, because the configuration has to come after the packages, whatever was asked for. A new build directory
# gets the tests only from `make check`, which installs what they need; after that it keeps them.
testing = $(if $(wildcard $(BUILD)/CMakeCache.txt),,-DBUILD_TESTING=OFF)
check lint: testing = -DBUILD_TESTING=ON
define compile
	cmake -S . -B $(BUILD) -DCMAKE_INSTALL_PREFIX=$(PREFIX) $(testing) $(CMAKE_FLAGS)
	cmake --build $(BUILD) -j $(JOBS)
endef

build: needs-build
	$(compile)

demo: needs-demo
	$(compile)
	@demo/run $(BUILD)

check: needs-test
	$(compile)
	cd $(BUILD) && CTEST_OUTPUT_ON_FAILURE=1 ctest -j $(JOBS) $(CTEST_FLAGS)

install: build
	cmake --install $(BUILD)

format:
	git ls-files '*.c' '*.h' '*.cpp' '*.hpp' | xargs clang-format -i

lint: needs-test
	$(compile)
	cd $(BUILD) && ctest --output-on-failure -R '^laws\.'

clean:
	rm -rf $(BUILD)
