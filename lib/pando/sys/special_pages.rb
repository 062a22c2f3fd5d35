# frozen_string_literal: true

require "etc"

module Pando
  module Sys
    # How much of another process's memory the kernel keeps in huge pages, and how much it has merged with identical
    # pages (KSM), in bytes; read from /proc.
    SpecialPages = Struct.new(:huge, :merged, :gain) do
      # `merged` is nil before Linux 6.1. `gain`, the memory saved minus what the kernel needs to manage it, is nil
      # before 6.4.
      #
      # @param pid [Integer]
      # @return [SpecialPages, nil] nil: it has ended, or we may not read its memory map
      def self.of(pid)
        huge = File.read("/proc/#{pid}/smaps_rollup")[/^AnonHugePages: +(\d+) kB$/, 1]
        new(huge.to_i * 1024, *merged(pid))
      rescue SystemCallError
        nil
      end

      # Reads /proc/PID/ksm_stat (Linux' ksm.rst).
      def self.merged(pid)
        told = File.read("/proc/#{pid}/ksm_stat")
        pages = told[/^ksm_merging_pages (\d+)$/, 1]
        [pages && (pages.to_i * Etc.sysconf(Etc::SC_PAGESIZE)), told[/^ksm_process_profit (-?\d+)$/, 1]&.to_i]
      rescue SystemCallError
        []
      end
      private_class_method :merged
    end
  end
end
