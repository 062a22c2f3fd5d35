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
      def writable? = rights[1] == "w"
      def executable? = rights[2] == "x"
      def private? = rights[3] == "p"
      # Whether the mapping permits no access at all.
      def closed? = rights.start_with?("---")
      def size = to - from

      # @return [String] the name without the kernel's mark of a deleted file
      def path = name.delete_suffix(" (deleted)")
    end

    Mapping::LINE = /\A(\h{1,16})-(\h{1,16}) ([r-][w-][x-][ps]) \h+ \S+ (\d+) *(.*)$/
  end
end
