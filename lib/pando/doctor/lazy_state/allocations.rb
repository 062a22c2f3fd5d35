# frozen_string_literal: true

require "objspace"
require "tmpdir"
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

        # Reads what is left, and then forgets it.
        #
        # @yieldparam address [Integer] @yieldparam group [Group] one of {#groups}
        # @return [Array<Group>]
        def read(&each)
          groups = {}
          classes = Classes.new
          dumped { |line| note(line, groups, classes, &each) }
          groups.values
        ensure
          ObjectSpace.trace_object_allocations_stop
          ObjectSpace.trace_object_allocations_clear
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

        # In a dump a quotation mark within a text follows a backslash, so that these find real keys only.
        def note(line, groups, classes)
          file, lineno = line.match(/"file":"([^"]*)", "line":(\d+)/)&.captures
          generation = line[/"generation":(\d+)/, 1]
          return if file.nil? || generation.nil? || @places.pando?(file)

          window = @starts.rindex { |start| start <= generation.to_i }
          return if window.nil? || window >= windows

          address = line[/\A\{"address":"0x(\h+)"/, 1].to_i(16)
          key = [file, lineno.to_i, Origins.at(address), classes.name(line)]
          group = groups[key] ||= Group.new(*key, windows)
          group.add(window, line[/"memsize":(\d+)/, 1].to_i)
          yield address, group if block_given?
        end

        # What an object of a dump is called: its class, or what the VM calls it.
        class Classes
          def initialize
            @names = {}
            name = Module.instance_method(:inspect)
            ObjectSpace.each_object(Module) { |one| @names[Origins.address(one)] = -> { name.bind_call(one) } }
          end

          # @param line [String] of a dump
          # @return [String, Symbol] a Symbol for an object of the VM
          def name(line)
            type = line[/"type":"(\w+)"/, 1]
            return line[/"imemo_type":"(\w+)"/, 1].to_s.to_sym if type == "IMEMO"

            known = @names[line[/"class":"0x(\h+)"/, 1].to_s.to_i(16)]
            known ? resolve(known, line) : "(#{type.downcase})"
          end

          private

          def resolve(known, line)
            return known unless known.is_a?(Proc)

            @names[line[/"class":"0x(\h+)"/, 1].to_i(16)] = known.call.b.force_encoding(Encoding::UTF_8)
          end
        end
      end
    end
  end
end
