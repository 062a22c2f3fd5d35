# frozen_string_literal: true

require "etc"
require "pando/pages/maps_line"

module Pando
  module Pages
    # What each page of a process is for, by its mappings (/proc/PID/maps, proc_pid_maps(5)) and by the worker's word
    # for where Ruby's heap is. Exact for Ruby's heap, for files and for what has a name; the rest goes by the layout
    # that the GNU C library and Ruby give it:
    #
    # - an arena of malloc's begins at a multiple of 64 MiB, and what is not used of these can't be accessed;
    # - a stack of a thread or fiber lies above a single page that can't be accessed;
    # - variables of a library without a value lie right behind its writable part.
    #
    # @api private
    class AddressSpace
      # In the order in which they are shown, with what they are called.
      KINDS = { ruby_heap: "Ruby heap", malloc: "malloc", anonymous: "large blocks", code: "compiled code",
                stack: "stacks", data: "library data", file: "files" }.freeze

      Mapping = Struct.new(:from, :to, :kind)

      PAGE = Etc.sysconf(Etc::SC_PAGESIZE)
      # Of Ruby's heap, 3.1 and newer.
      HEAP_PAGE = 65_536
      ARENA = 64 << 20
      # Bytes behind a library's writable part that are taken for its variables: what the kernel maps there besides,
      # nobody can tell from them.
      VARIABLES = 128 << 10
      # Names that the kernel or its user has given (PR_SET_VMA_ANON_NAME, prctl(2)).
      NAMES = { /\[heap|malloc|jemalloc/ => :malloc, /yjit|zjit|jit/i => :code, /stack/ => :stack }.freeze
      private_constant :Mapping, :ARENA, :VARIABLES, :NAMES

      # @param maps [String] the text of /proc/PID/maps
      # @param heap [Array<Integer>] addresses of Ruby's heap pages
      # @param page [Integer] bytes of a page of that kernel
      def initialize(maps, heap, page: PAGE)
        @page = page
        @heap = heap.to_h { |address| [address / HEAP_PAGE, true] }
        @jemalloc = maps.include?("jemalloc")
        @lines = MapsLine.parse(maps)
        @mappings = @lines.each_index.flat_map { |at| mappings(at) }
        @at = 0
      end

      # Fastest when they are asked for in rising order.
      # @param number [Integer] of a page
      # @return [Symbol] one of {KINDS}
      def kind(number, of_file)
        return :file if of_file

        address = number * @page
        return :ruby_heap if @heap.key?(address / HEAP_PAGE)

        mapping_at(address)&.kind || :anonymous
      end

      # @yieldparam from [Integer] @yieldparam to [Integer] numbers of pages: the first, and the one behind the last
      def each_range
        @lines.each { |line| yield line.from / @page, line.to / @page unless line.closed? }
      end

      private

      # One, or two: a library's variables and what follows.
      def mappings(at)
        line = @lines[at]
        before = @lines[at - 1] if at.positive?
        behind = @lines[at + 1]
        return [Mapping.new(line.from, line.to, kind_of(line, before, behind))] unless variables?(line, before)

        middle = [line.from + VARIABLES, line.to].min
        rest = MapsLine.new(middle, line.to, line.rights, line.inode, "")
        [Mapping.new(line.from, middle, :data), Mapping.new(middle, line.to, kind_of(rest, nil, behind))]
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

      def mapping_at(address)
        @at = 0 if @mappings[@at] && address < @mappings[@at].from
        @at += 1 while @mappings[@at] && address >= @mappings[@at].to
        one = @mappings[@at]
        one if one && address >= one.from
      end
    end
  end
end
