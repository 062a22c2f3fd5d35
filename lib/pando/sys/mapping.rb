# frozen_string_literal: true

module Pando
  module Sys
    # A mapping of a process: a line of /proc/PID/maps (proc_pid_maps(5)). `inode` is "0" and `name` empty for anonymous
    # memory.
    Mapping = Struct.new(:from, :to, :rights, :inode, :name) do
      # @param text [String] of /proc/PID/maps; lines in another format are skipped
      def self.parse(text)
        text.scrub("?").each_line.filter_map do |line|
          from, to, rights, inode, name = self::LINE.match(line)&.captures
          new(from.hex, to.hex, rights, inode, name) if from && to.hex > from.hex
        end
      end

      def file? = inode != "0"
      def anonymous? = name.empty?
      # Memory without a file, possibly named by its owner.
      def nameless? = !file? && (anonymous? || name.start_with?("[anon:"))
      def writable? = rights[1] == "w"
      def executable? = rights[2] == "x"
      def code? = rights.start_with?("r-x")
      def private? = rights[3] == "p"
      # Whether the mapping permits no access at all.
      def closed? = rights.start_with?("---")
      def size = to - from
      def cover?(address) = address >= from && address < to

      # @return [String] the name without the kernel's mark of a deleted file
      def path = name.delete_suffix(" (deleted)")
    end

    Mapping::LINE = /\A(\h{1,16})-(\h{1,16}) ([r-][w-][x-][ps]) \h+ \S+ (\d+) *(.*)$/

    # The memory that YJIT has for code in a process, in bytes. YJIT reserves all that it may ever use, and makes it
    # executable from the front as needed. This is read from outside, because Ruby does not tell the limit.
    class CodeRegion < Struct.new(:used, :bound)
      # YJIT's limit is a multiple of one MiB.
      UNIT = 1024 * 1024
      private_constant :UNIT

      # @param code [Integer] the least bytes of code in the region: other libraries may have similar regions
      # @return [CodeRegion, nil]
      # @raise [SystemCallError] the process has ended, or we may not read its memory map
      def self.of(pid, code) = all(File.read("/proc/#{pid}/maps")).select { |one| one.used >= code }.min_by(&:used)

      # Code that is written after a fork has its own mapping, so a region may consist of several adjacent mappings.
      def self.all(maps)
        mappings = Mapping.parse(maps).select(&:nameless?).select { |one| one.code? || one.closed? }
        runs = mappings.slice_when { |one, other| one.to != other.from || (one.closed? && other.code?) }
        runs.map { |run| region(run) }.select { |one| one.used.positive? && (one.bound % UNIT).zero? }
      end

      def self.region(run) = new(run.select(&:code?).sum(&:size), run.last.to - run.first.from)
      private_class_method :region
    end
  end
end
