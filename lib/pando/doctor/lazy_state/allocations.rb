# frozen_string_literal: true

require "objspace"
require "tmpdir"
require "pando/doctor/lazy_state/class_names"
require "pando/doctor/lazy_state/group"

module Pando
  module Doctor
    module LazyState
      # Follows what is allocated in a row of windows (one a request), and tells what of it is still alive at
      # the end. Ruby notes each object's line and the number of garbage collections at its birth; a collection
      # between two windows makes that number tell the window. Only these objects are dumped, whatever the size
      # of the heap.
      #
      # @api private
      class Allocations
        # @param places [Places]
        def initialize(places)
          @places = places
          @starts = []
        end

        # @return [nil]
        def start
          collect
          @traced_already = !ObjectSpace.allocation_sourcefile(Object.new).nil?
          ObjectSpace.trace_object_allocations_start
          Origins.start(@places.own, @places.foreign)
          nil
        end

        # Ends the window before, if there is one.
        # @return [nil]
        def open_window
          collect
          @starts << GC.count
          nil
        end

        # @return [nil]
        def stop
          collect
          @starts << GC.count # what comes now is of no window
          Origins.stop
          nil
        end

        # Reads what is left, and then forgets it (unless somebody else traces too).
        #
        # @yieldparam address [Integer] @yieldparam group [Group] one of {#groups}
        # @return [Array<Group>]
        def read(&each)
          groups = {}
          classes = ClassNames.new
          dumped { |line| note(line, groups, classes, &each) }
          groups.values
        ensure
          ObjectSpace.trace_object_allocations_stop
          ObjectSpace.trace_object_allocations_clear unless @traced_already
        end

        private

        def windows = @starts.size - 1
        def collect = GC.start(full_mark: true, immediate_sweep: true)

        def dumped(&line)
          Dir.mktmpdir("pando-heap") do |folder|
            File.open(File.join(folder, "new"), "w+") do |file|
              ObjectSpace.dump_all(output: file, since: @starts.first)
              file.rewind
              file.set_encoding(Encoding::BINARY)
              file.each_line(&line)
            end
          end
        end

        # In a dump a quotation mark within a text follows a backslash, so that the patterns find real keys only.
        def note(line, groups, classes)
          window = window_of(line)
          file, lineno = line.match(/"file":"([^"]*)"(?:, "line":(\d+))?/)&.captures
          return if window.nil? || file.nil? || @places.pando?(file)

          address = line[/\A\{"address":"0x(\h+)"/, 1].to_i(16)
          key = [file, lineno.to_i, Origins.at(address), classes.name(line)]
          group = groups[key] ||= Group.new(*key, windows)
          group.add(window, line[/"memsize":(\d+)/, 1].to_i)
          group.holds_descriptors! if line.include?('"type":"FILE"')
          yield address, group
        end

        def window_of(line)
          generation = line[/"generation":(\d+)/, 1]
          window = generation && @starts.rindex { |start| start <= generation.to_i }
          window if window && window < windows
        end
      end
    end
  end
end
