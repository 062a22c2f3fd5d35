# frozen_string_literal: true

require "etc"
require "pando/code_bound"
require "pando/server/allocator"
require "pando/sys"
require "pando/yjit"

module Pando
  module Doctor
    # What this kernel and this Ruby offer for sharing memory and for checking forks, and how much of it was in use.
    module Features
      PAGEMAP_SCAN = 0xc0606610 # an ioctl of Linux 6.7
      private_constant :PAGEMAP_SCAN

      module_function

      # What the application's processes used once the last generation had served.
      # @param evidence [Evidence]
      # @return [Hash{Symbol => String}]
      def in_use(evidence) = { yjit_code: compiled_code(evidence) }.compact

      # The workers have ended by now: this is their own report.
      def compiled_code(evidence)
        reported = evidence.snapshots(:served).filter_map { |fact| fact[:code_region] }
        used, bound = reported.max_by(&:first)
        CodeBound.new(used, bound, 0).to_s if used
      end

      # @param maps [String] the memory map of a process of the application
      # @return [Hash{Symbol => Object}] values that JSON knows
      def all(maps = File.read("/proc/self/maps"))
        { kernel: File.read("/proc/sys/kernel/osrelease").chomp, ruby: RUBY_DESCRIPTION,
          yjit: YJIT.enabled?, zjit: YJIT.displaced?, jemalloc: jemalloc,
          libc: libc(maps), pidfd: pidfd?, kcmp: kcmp?, pagemap_scan: pagemap_scan?, userfaultfd: userfaultfd?,
          populate_write: Sys::HotSet.supported?, process_warmup: Process.respond_to?(:warmup),
          cpus: Etc.nprocessors }
      end

      # @return [String] the version in use, or why jemalloc is not in use
      def jemalloc
        version = Sys.jemalloc and return version[/\A[\d.]+/]
        obstacle = Server::Allocator.new(:auto, loaded: nil).obstacle
        "no#{": #{obstacle}; with one, workers share more (docs/sharing.md)" if obstacle}"
      end

      def libc(maps)
        return "musl" if maps.include?("ld-musl")

        version = maps[%r{/libc-([\d.]+)\.so}, 1] || glibc_version
        version ? "glibc #{version}" : "glibc"
      end

      def glibc_version
        Etc.confstr(Etc::CS_GNU_LIBC_VERSION)&.split&.last
      rescue SystemCallError, NameError
        nil
      end

      def pidfd?
        Sys.close_fd(Sys.pidfd_open(Process.pid))
        true
      rescue SystemCallError
        false
      end

      def kcmp?
        Sys.open_file_shared?(Process.pid, 0, Process.pid, 0)
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
