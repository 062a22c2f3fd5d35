# frozen_string_literal: true

module Pando
  module Pages
    # What the kernel tells about each page of a process of one's own user (proc_pid_pagemap(5)).
    class Pagemap
      PRESENT = 1 << 63
      SWAPPED = 1 << 62
      OF_FILE = 1 << 61
      EXCLUSIVE = 1 << 56
      BYTES = 8
      CHUNK = 65_536 # entries of a read
      AHEAD = 512 # entries that are read ahead
      LARGEST = 1 << 24 # pages; a larger mapping is only reserved address space

      # @param pid [Integer]
      # @return [Pagemap, nil] nil: forbidden, or there is no such process
      def self.of(pid)
        new(File.open("/proc/#{pid}/pagemap", "rb"))
      rescue SystemCallError
        nil
      end

      def initialize(file)
        @file = file
      end

      # @param from [Integer] the first page's number @param to [Integer] that behind the last one
      # @yieldparam number [Integer] @yieldparam entry [Integer]
      def each(from, to)
        return if to - from > LARGEST

        while from < to
          entries = read(from, [to - from, CHUNK].min)
          return if entries.empty?

          entries.each_with_index { |entry, place| yield from + place, entry }
          from += entries.size
        end
      end

      # Whether the process has that page, in memory or swapped out. Reads ahead.
      def page?(number)
        look_ahead(number) unless @ahead && number.between?(@from, @from + @ahead.size - 1)
        @ahead[number - @from].to_i.anybits?(PRESENT | SWAPPED)
      end

      def close = @file.close

      private

      def look_ahead(number)
        @ahead = read(number, AHEAD)
        @from = number
      end

      def read(from, count)
        @file.pread(count * BYTES, from * BYTES).unpack("Q*")
      rescue SystemCallError, EOFError
        []
      end
    end
  end
end
