# frozen_string_literal: true

require "etc"
require "pando/pages/recording"
require "pando/sys/mapping"

module Pando
  module Pages
    # The private pages of one worker, counted by use (kind), by what made them private (cause), and by whether the mold
    # has the page too: then it was shared until the worker wrote to it. In the command's process.
    class PrivatePages
      # Their names, in the order of display.
      CAUSES = { before: "before", request: "request", compiling: "compiling request", compile: "compile",
                 minor_gc: "minor GC", major_gc: "major GC", mixed: "request or GC" }.freeze

      # Pages of one kind and cause that became private in one step.
      Cell = Struct.new(:kind, :cause, :step, :pages)

      attr_reader :recording

      # @param mold [Pagemap, nil] of the worker's mold
      # @param worker [Pagemap, nil] of the worker, to count its shared pages
      def initialize(recording, mold: nil, worker: nil)
        @recording = recording
        @space = AddressSpace.new(recording.parts["maps"], recording.heap)
        @mold = mold
        @runs = []
        count_private
        @shared = count_shared(worker) if worker
      end

      # @return [Array<Cell>]
      def cells = @cells.values

      # Numbers of private pages: by kind, by cause, by both.
      def private = @private ||= sum(&:kind)
      def causes = @causes ||= sum(&:cause)
      def by_kind_and_cause = @by_kind_and_cause ||= sum { |cell| [cell.kind, cell.cause] }
      # @return [Hash{Symbol => Integer}, nil] by kind: private pages that the mold has too; shared pages. nil: unknown
      attr_reader :copied, :shared
      # @return [Array<Array(Integer, Integer, Symbol, Symbol, Integer)>] runs of alike pages: first page, number of
      #   pages, kind, cause, step
      attr_reader :runs

      def total = private.values.sum
      def recorded? = recording.jobs.any?

      private

      def sum = cells.each_with_object(Hash.new(0)) { |cell, sums| sums[yield(cell)] += cell.pages }

      def count_private
        @cells = Hash.new { |cells, key| cells[key] = Cell.new(*key, 0) }
        @copied = Hash.new(0) if @mold
        recording.each_page do |page|
          kind = @space.kind(page.number, page.of_file)
          key = [kind, cause(kind, recording.steps[page.step]), page.step]
          @cells[key].pages += 1
          @copied[kind] += 1 if @mold&.page?(page.number)
          extend_run(page.number, *key)
        end
      end

      def extend_run(number, kind, cause, step)
        last = @runs.last
        if last && last[0] + last[1] == number && last[2] == kind && last[4] == step
          last[1] += 1
        else
          @runs << [number, 1, kind, cause, step]
        end
      end

      # Only the compiler writes compiled code; its other writes cannot be told from those of the request.
      def cause(kind, step)
        return step.cause unless step.cause == :job
        return :compile if kind == :code

        recording.jobs.dig(step.job - 1, "compiled").to_i.positive? ? :compiling : :request
      end

      def count_shared(worker)
        found = Hash.new(0)
        @space.each_range do |from, to|
          worker.each(from, to) do |number, entry|
            next if entry.nobits?(Pagemap::PRESENT) || entry.anybits?(Pagemap::EXCLUSIVE)

            found[@space.kind(number, entry.anybits?(Pagemap::OF_FILE))] += 1
          end
        end
        found
      end
    end

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
      NAMES = { /\[heap|malloc|jemalloc/ => :malloc, /yjit|zjit|jit/i => :code, /stack|fiber_pool/ => :stack }.freeze

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
