# frozen_string_literal: true

require "etc"
require "pando/server/allocator"
require "pando/sys"
require "pando/yjit"

module Pando
  module Doctor
    # What this kernel and this Ruby offer for sharing memory and for checking forks.
    module Features
      PAGEMAP_SCAN = 0xc0606610 # an ioctl of Linux 6.7

      module_function

      def all
        { kernel: File.read("/proc/sys/kernel/osrelease").chomp, ruby: RUBY_DESCRIPTION,
          yjit: YJIT.enabled?, zjit: YJIT.displaced?, jemalloc: jemalloc, libc: libc,
          pidfd: works? { Sys.close_fd(Sys.pidfd_open(Process.pid)) },
          kcmp: works? { Sys.open_file_shared?(Process.pid, 0, Process.pid, 0) },
          pagemap_scan: pagemap_scan?, userfaultfd: userfaultfd?, populate_write: Sys::HotSet.supported?,
          process_warmup: Process.respond_to?(:warmup), cpus: Etc.nprocessors }
      end

      # @return [String] the version in use, or why jemalloc is not in use
      def jemalloc
        version = Sys.jemalloc and return version[/\A[\d.]+/]
        obstacle = Server::Allocator.new(:auto, loaded: nil).obstacle
        "no#{": #{obstacle}; with one, workers share more (docs/sharing.md)" if obstacle}"
      end

      def libc
        return "musl" if File.read("/proc/self/maps").include?("ld-musl")

        version = Etc.confstr(Etc::CS_GNU_LIBC_VERSION)&.split&.last
        version ? "glibc #{version}" : "glibc"
      rescue SystemCallError, NameError
        "glibc"
      end

      def works?
        yield
        true
      rescue SystemCallError
        false
      end

      # A kernel that knows the ioctl refuses an argument of zeros with EINVAL, any other with ENOTTY.
      def pagemap_scan?
        File.open("/proc/self/pagemap") { |file| file.ioctl(PAGEMAP_SCAN, "\0" * 96) }
        true
      rescue Errno::ENOTTY, Errno::ENOENT, Errno::EACCES, Errno::EPERM
        false
      rescue SystemCallError
        true
      end

      def userfaultfd? = File.exist?("/proc/sys/vm/unprivileged_userfaultfd") || File.exist?("/dev/userfaultfd")
    end
  end
end
