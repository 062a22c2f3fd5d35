# frozen_string_literal: true

require "objspace"
require "tmpdir"

module Pando
  module Doctor
    module LazyState
      # Traces allocations in consecutive windows (one for each request), and groups the objects that are still alive at
      # the end. Ruby records each object's line and the number of garbage collections before its birth; a collection
      # between two windows makes that number identify the window. Only these objects are dumped, however large the
      # heap is.
      class Allocations
        def initialize(places)
          @places = places
          @starts = []
        end

        def start
          collect
          @traced_already = !ObjectSpace.allocation_sourcefile(Object.new).nil?
          ObjectSpace.trace_object_allocations_start
          Origins.start(@places.own, @places.foreign)
        end

        # Begins a window, and ends the one before.
        def open_window
          collect
          @starts << GC.count
        end

        def stop
          open_window # later objects belong to no window
          Origins.stop
        end

        # Groups the live objects, and ends the trace (unless it had been started by somebody else).
        # @yieldparam address [Integer] @yieldparam group [Group]
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

        # In a dump quotation marks within a text are escaped, so the patterns match keys only.
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

      # The live objects of one class that one line made, counted by the request that made them.
      class Group
        # The VM's inline caches: each request fills those that it passes, and no line of the application causes that.
        CACHES = %i[callcache callinfo constcache].freeze
        # Objects that the VM makes of code.
        CODE = %i[iseq ment cref ast].freeze

        # Of the innermost frame.
        attr_reader :file, :line
        # @return [Array(String, Integer), nil] the innermost line of the application
        attr_reader :origin
        # @return [String, Symbol] of the class; a Symbol for the VM's internal objects
        attr_reader :name
        # @return [Array<Integer>] number of objects and of bytes by request
        attr_reader :objects, :bytes

        def initialize(file, line, origin, name, windows)
          @file = file.dup.force_encoding(Encoding::UTF_8)
          @line = line
          @origin = origin
          @name = name
          @descriptors = false
          @objects = Array.new(windows, 0)
          @bytes = Array.new(windows, 0)
        end

        def add(window, bytes)
          @objects[window] += 1
          @bytes[window] += bytes
        end

        def place = origin || [file, line]

        # Growth of open files, sockets and pipes is another check's subject.
        def holds_descriptors! = @descriptors = true
        def descriptors? = @descriptors

        def cache? = CACHES.include?(name)
        # Looking at code makes RubyVM::InstructionSequence objects.
        def code? = CODE.include?(name) || name == "RubyVM::InstructionSequence"

        # Made by the VM, not by the application.
        def vm? = name.is_a?(Symbol) || name.start_with?("(internal ")
        # A table of the VM, such as that of all string literals (an object from Ruby 4.0 on). It doubles when
        # it is full, whatever code runs then.
        def vm_table? = name == "(internal data)"

        # Later requests keep objects too. The last one does not count: the next might release what it holds.
        def grows? = later.size >= 2 && later.all?(&:positive?)

        # Only the first requests keep objects.
        def lazy? = lasting(@objects).any?(&:positive?) && (later.empty? ? @objects.drop(1).all?(&:zero?) : !grows?)

        # Of what was built once.
        def lasting_objects = lasting(@objects).sum
        def lasting_bytes = lasting(@bytes).sum
        # Of what a later request adds, on average.
        def objects_per_request = per_request(@objects)
        def bytes_per_request = per_request(@bytes)

        private

        # The last request's objects do not count, unless it is the only one.
        def lasting(counts) = counts.size == 1 ? counts : counts[0..-2]
        def later = @objects[1..-2] || []

        def per_request(counts)
          counts = counts[1..-2] || []
          counts.empty? ? 0 : (counts.sum.to_f / counts.size).ceil
        end
      end

      # Names the classes of objects in a dump, which has only the classes' addresses.
      class ClassNames
        # Names of classes and modules themselves.
        TYPES = { "CLASS" => "Class", "MODULE" => "Module", "ICLASS" => "(included module)" }.freeze
        INSPECT = Module.instance_method(:inspect)
        SINGLETON = Module.instance_method(:singleton_class?)

        def initialize
          @classes = {}
          @names = {}
          ObjectSpace.each_object(Module) { |one| @classes[Origins.address(one)] = one }
        end

        # @return [String, Symbol] a Symbol for the VM's internal objects
        def name(line)
          type = line[/"type":"(\w+)"/, 1]
          return line[/"imemo_type":"(\w+)"/, 1].to_s.to_sym if type == "IMEMO"

          TYPES[type] || name_at(line[/"class":"0x(\h+)"/, 1].to_s.to_i(16)) || "(internal #{type.downcase})"
        end

        private

        def name_at(address) = @names[address] ||= (known = @classes[address]) && name_of(known)

        # Without addresses, which differ from run to run.
        def name_of(known)
          known = known.superclass while SINGLETON.bind_call(known) && known.superclass
          name = INSPECT.bind_call(known).scrub
          return name unless name.include?("0x")

          "(anonymous #{known.is_a?(Class) ? name_of(known.superclass) : "module"})"
        end
      end

      # Counts the entries of each Array, Hash and long String, by address. A container that grows by numbers, symbols
      # or older objects has no new object that a trace of allocations would show.
      class Containers
        # Bytes; shorter strings are not counted.
        LONG = 1024

        SIZES = { Array => Array.instance_method(:size), Hash => Hash.instance_method(:size) }.freeze
        BYTES = String.instance_method(:bytesize)

        # A container's entries before the first window, and its gain in each window.
        Growth = Struct.new(:address, :before, :gains) do
          # Whether each request after the first one adds entries.
          def steady? = gains.size > 3 && gains[1..-2].all?(&:positive?)
          # Whether only the first one does.
          def once? = gains.first.positive? && gains.drop(1).all?(&:zero?)

          # Entries (bytes of a String) that each request, or the first one, adds.
          def gain = steady? ? (gains[1..-2].sum.to_f / (gains.size - 2)).ceil : gains.first
        end

        def initialize
          @growths = {}
          @windows = 0
        end

        # Called before the first window and at the end of each.
        def count
          sizes = {}
          each_size { |one, size| sizes[Origins.address(one)] = size }
          compare(sizes) if @last
          @last = sizes
        end

        # @return [Array<Growth>] of containers that existed before and have never shrunk
        def growths = @growths.values

        private

        def each_size
          SIZES.each { |kind, size| ObjectSpace.each_object(kind) { |one| yield one, size.bind_call(one) } }
          ObjectSpace.each_object(String) do |one|
            bytes = BYTES.bind_call(one)
            yield one, bytes if bytes >= LONG
          end
        end

        def compare(sizes)
          @growths.select! { |address, growth| (sizes[address] || -1) >= growth.before + growth.gains.sum }
          sizes.each do |address, size|
            gain = size - (@last[address] || size)
            next if gain.zero? && !@growths.key?(address)
            next if gain.negative?

            growth = @growths[address] ||= Growth.new(address, size - gain, Array.new(@windows, 0))
            growth.gains << gain
          end
          @windows += 1
        end
      end
    end
  end
end
