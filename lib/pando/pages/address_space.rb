# frozen_string_literal: true

require "etc"
require "pando/sys/mapping"

module Pando
  module Pages
    # Tells the use of each page of a process, by the process's mappings and by the worker's list of Ruby's heap pages.
    # Exact for Ruby's heap, files and named mappings; the rest relies on the layout by the GNU C library and Ruby:
    #
    # - a malloc arena begins at a multiple of 64 MiB, and its unused part cannot be accessed;
    # - the stack of a thread or fiber lies above a single page that cannot be accessed;
    # - uninitialized variables of a library lie right behind its writable part.
    class AddressSpace
      # Their names, in the order of display.
      KINDS = { ruby_heap: "Ruby heap", malloc: "malloc", anonymous: "large blocks", code: "compiled code",
                stack: "stacks", data: "library data", file: "files" }.freeze

      Area = Struct.new(:from, :to, :kind)

      PAGE = Etc.sysconf(Etc::SC_PAGESIZE)
      HEAP_PAGE = 65_536 # bytes, since Ruby 3.1
      ARENA = 64 << 20
      # Bytes behind a library's writable part that count as its variables; another mapping there looks the same.
      VARIABLES = 128 << 10
      # Names from the kernel or from PR_SET_VMA_ANON_NAME (prctl(2)).
      NAMES = { /\[heap|malloc|jemalloc/ => :malloc, /yjit|zjit|jit/i => :code, /stack/ => :stack }.freeze

      def initialize(maps, heap, page: PAGE)
        @page = page
        @heap = heap.to_h { |address| [address / HEAP_PAGE, true] }
        @jemalloc = maps.include?("jemalloc")
        @lines = Sys::Mapping.parse(maps)
        @areas = @lines.each_index.flat_map { |at| areas(at) }
        @at = 0
      end

      # Fastest if the pages are asked for in rising order.
      # @return [Symbol] one of {KINDS}
      def kind(number, of_file)
        return :file if of_file

        address = number * @page
        return :ruby_heap if @heap.key?(address / HEAP_PAGE)

        area_at(address)&.kind || :anonymous
      end

      # @yieldparam from [Integer] the first page's number @yieldparam to [Integer] that behind the last one
      def each_range
        @lines.each { |line| yield line.from / @page, line.to / @page unless line.closed? }
      end

      private

      # One area, or two: a library's variables and the rest.
      def areas(at)
        line = @lines[at]
        before = @lines[at - 1] if at.positive?
        behind = @lines[at + 1]
        return [Area.new(line.from, line.to, kind_of(line, before, behind))] unless variables?(line, before)

        middle = [line.from + VARIABLES, line.to].min
        rest = Sys::Mapping.new(middle, line.to, line.rights, line.inode, "")
        [Area.new(line.from, middle, :data), Area.new(middle, line.to, kind_of(rest, nil, behind))]
      end

      def variables?(line, before)
        line.anonymous? && line.writable? && before&.file? && before.writable? && before.private? &&
          before.to == line.from
      end

      def kind_of(line, before, behind)
        return :data if line.file?
        return NAMES.find { |pattern, _| pattern.match?(line.name) }&.last || :anonymous unless line.anonymous?
        return :code if line.executable?
        return :stack if guarded?(line, before)

        @jemalloc || arena?(line, behind) ? :malloc : :anonymous
      end

      def guarded?(line, before)
        !before.nil? && before.closed? && before.size == @page && before.to == line.from
      end

      def arena?(line, behind)
        (line.from % ARENA).zero? && !behind.nil? && behind.closed? && behind.from == line.to &&
          behind.to == line.from + ARENA
      end

      def area_at(address)
        @at = 0 if @areas[@at] && address < @areas[@at].from
        @at += 1 while @areas[@at] && address >= @areas[@at].to
        one = @areas[@at]
        one if one && address >= one.from
      end
    end
  end
end
