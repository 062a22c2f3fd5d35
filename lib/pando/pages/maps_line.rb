# frozen_string_literal: true

module Pando
  module Pages
    # A line of /proc/PID/maps: a mapping, with its rights and its name (proc_pid_maps(5)).
    #
    # @api private
    MapsLine = Struct.new(:from, :to, :rights, :inode, :name) do
      # @param text [String] from anybody: what is no such line is left out
      # @return [Array<MapsLine>]
      def self.parse(text)
        text.b.each_line.filter_map do |line|
          from, to, rights, inode, name = self::LINE.match(line)&.captures
          new(from.hex, to.hex, rights, inode, name) if from && to.hex > from.hex
        end
      end

      def file? = inode != "0"
      def anonymous? = name.empty?
      def writable? = rights[1] == "w"
      def executable? = rights[2] == "x"
      def private? = rights[3] == "p"
      # Nobody may do anything with it.
      def closed? = rights.start_with?("---")
      def size = to - from
    end

    MapsLine::LINE = /\A(\h{1,16})-(\h{1,16}) ([r-][w-][x-][ps]) \h+ \S+ (\d+) *(.*)$/
  end
end
