# frozen_string_literal: true

require "mkmf"

# The cluster is made of what the Linux kernel has (pidfd, epoll, memfd, the child subreaper). Elsewhere the gem
# installs without an extension, and serves for development from one plain process: see docs/macos.md.
unless RUBY_PLATFORM.include?("linux")
  message("Pando has no extension for #{RUBY_PLATFORM}: here it serves for development only.\n")
  File.write("Makefile", dummy_makefile(__dir__).join)
  exit
end

def require_function(name, header, hint)
  abort "Pando needs #{name}(): #{hint}" unless have_func(name, header)
end

require_function("_Fork", "unistd.h", "glibc 2.34 or musl 1.2.2, or newer.")
require_function("memfd_create", "sys/mman.h", "glibc 2.27 or musl 1.1.20, or newer.")

have_func("rb_internal_thread_specific_get", "ruby/thread.h") # Ruby 3.3, see bind_lock.c

# One extension, two halves: sys/ is the kernel, http/ is pure C without any
# Ruby header (so that it can be fuzzed alone); bind_*.c join them to Ruby.
folders = [".", "sys", "http"]
sources = folders.flat_map { |folder| Dir.glob(File.join(__dir__, folder, "*.c")) }
$srcs = sources.map { |path| File.basename(path) }
$objs = $srcs.map { |name| name.sub(/\.c\z/, ".#{$OBJEXT}") }
[*folders.drop(1), "program"].each { |folder| $VPATH << "$(srcdir)/#{folder}" }
$cleanfiles << "pando-reactor"

$CFLAGS << " -std=gnu11 -D_GNU_SOURCE -fvisibility=hidden -Wall -Wextra -Wno-unused-parameter"
$CFLAGS << " -Werror" if ENV["PANDO_WERROR"]
$CFLAGS << " #{ENV["PANDO_CFLAGS"]}" if ENV["PANDO_CFLAGS"]
$LDFLAGS << " #{ENV["PANDO_LDFLAGS"]}" if ENV["PANDO_LDFLAGS"]

create_makefile("pando/pando_ext")

# And what the monitor runs as the reactor: of all this the part without Ruby, in a program of its own.
program = Dir.glob(File.join(__dir__, "{program,http}", "*.c")).map { |path| File.basename(path, ".c") }
objects = [*program, "fds", "process", "record", "sealed"].map { |name| "#{name}.#{$OBJEXT}" }.sort
File.write("Makefile", <<~MAKE, mode: "a")

  PROGRAM = pando-reactor
  PROGRAM_OBJS = #{objects.join(" ")}
  all: $(PROGRAM)
  $(PROGRAM): $(PROGRAM_OBJS) Makefile
  \t$(ECHO) linking $(PROGRAM)
  \t$(Q) $(CC) $(CFLAGS) -pie -o $@ $(PROGRAM_OBJS) -Wl,-z,relro,-z,now #{ENV.fetch("PANDO_LDFLAGS", "")}
  install-so: install-program
  .PHONY: install-program
  install-program: $(PROGRAM)
  \t$(Q) $(MAKEDIRS) $(RUBYARCHDIR)
  \t$(INSTALL_PROG) $(PROGRAM) $(RUBYARCHDIR)
MAKE
