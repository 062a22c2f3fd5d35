# frozen_string_literal: true

require "etc"
require "rbconfig"
require "pando/server/allocator"
require "pando/sys"
require "pando/yjit"

module Pando
  module Doctor
    # What this kernel and this Ruby have that sharing memory and checking forks can use.
    module Features
      PATHS = { thp: "/sys/kernel/mm/transparent_hugepage/enabled", ksm: "/sys/kernel/mm/ksm/run" }.freeze
      # An ioctl of Linux 6.7.
      PAGEMAP_SCAN = 0xc0606610
      private_constant :PATHS, :PAGEMAP_SCAN

      module_function

      # @param maps [String] the memory map of a process of the application
      # @return [Hash{Symbol => Object}] what JSON knows
      def all(maps = File.read("/proc/self/maps"))
        { kernel: File.read("/proc/sys/kernel/osrelease").chomp, ruby: RUBY_DESCRIPTION,
          yjit: YJIT.enabled?, zjit: YJIT.displaced?, jemalloc: jemalloc,
          libc: libc(maps), pidfd: pidfd?, kcmp: kcmp?, pagemap_scan: pagemap_scan?, userfaultfd: userfaultfd?,
          transparent_huge_pages: selected(:thp), huge_pages_allowed: huge_pages_allowed?, ksm: ksm,
          merging_allowed: merging_allowed?, populate_write: Sys::HotSet.supported?,
          process_warmup: Process.respond_to?(:warmup),
          cpus: Etc.nprocessors }
      end

      # @return [String] the version in use, or why there is none
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

      # An argument of zeros is refused with EINVAL where the ioctl is known, else with ENOTTY.
      def pagemap_scan?
        File.open("/proc/self/pagemap") { |file| file.ioctl(PAGEMAP_SCAN, "\0" * 96) }
        true
      rescue Errno::ENOTTY, Errno::ENOENT, Errno::EACCES, Errno::EPERM
        false
      rescue SystemCallError
        true
      end

      def userfaultfd? = File.exist?("/proc/sys/vm/unprivileged_userfaultfd") || File.exist?("/dev/userfaultfd")

      def selected(name) = told(PATHS.fetch(name), /\[(\w+)\]/)

      # To this process, by the setting `transparent_huge_pages`.
      def huge_pages_allowed? = { "1" => true, "0" => false }[told("/proc/self/status", /^THP_enabled:\s*(\d)$/)]

      # In this process, by the setting `same_page_merging`.
      def merging_allowed? = { "yes" => true, "no" => false }[told("/proc/self/ksm_stat", /^ksm_merge_any: (\w+)$/)]

      def told(path, pattern)
        File.read(path)[pattern, 1]
      rescue SystemCallError
        nil
      end

      def ksm
        File.read(PATHS.fetch(:ksm)).to_i == 1
      rescue SystemCallError
        nil
      end
    end
  end
end
