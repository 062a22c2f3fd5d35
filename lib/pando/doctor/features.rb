# frozen_string_literal: true

require "etc"
require "pando/code_bound"
require "pando/mebibytes"
require "pando/server/allocator"
require "pando/sys"
require "pando/yjit"

module Pando
  module Doctor
    # What this kernel and this Ruby offer for sharing memory and for checking forks, and how much of it was in use.
    module Features
      extend Mebibytes

      PAGEMAP_SCAN = 0xc0606610 # an ioctl of Linux 6.7
      private_constant :PAGEMAP_SCAN

      module_function

      # What the application's processes used once the last generation had served.
      # @param evidence [Evidence]
      # @return [Hash{Symbol => String}]
      def in_use(evidence)
        last = evidence.memory.select { |one| one.moment == evidence.memory.last.moment }
        { huge_pages_in_use: huge_pages(last), merged_pages: merged_pages(last),
          yjit_code: compiled_code(evidence) }.compact
      end

      def huge_pages(processes)
        return if processes.empty? || processes.any? { |one| one.huge.nil? }

        "#{mebibytes(processes.sum(&:huge))} of #{mebibytes(processes.sum(&:rss))}, #{processes.size} processes"
      end

      # They may save a negative amount: the kernel's own bookkeeping needs memory too.
      def merged_pages(processes)
        return if processes.empty? || processes.any? { |one| one.merged.nil? }

        saved = "; they save #{mebibytes(processes.sum(&:gain))}" if processes.all?(&:gain)
        "#{mebibytes(processes.sum(&:merged))}#{saved}, so far"
      end

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
          transparent_huge_pages: read("/sys/kernel/mm/transparent_hugepage/enabled", /\[(\w+)\]/),
          huge_pages_allowed: huge_pages_allowed?, ksm: ksm,
          merging_allowed: merging_allowed?, populate_write: Sys::HotSet.supported?,
          process_warmup: Process.respond_to?(:warmup),
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

      # For this process, by the setting `transparent_huge_pages`.
      def huge_pages_allowed? = { "1" => true, "0" => false }[read("/proc/self/status", /^THP_enabled:\s*(\d)$/)]

      # For this process, by the setting `same_page_merging`.
      def merging_allowed? = { "yes" => true, "no" => false }[read("/proc/self/ksm_stat", /^ksm_merge_any: (\w+)$/)]

      def ksm = read("/sys/kernel/mm/ksm/run", /\d+/, 0)&.then { |text| text.to_i == 1 }

      def read(path, pattern, group = 1)
        File.read(path)[pattern, group]
      rescue SystemCallError
        nil
      end
    end
  end
end
