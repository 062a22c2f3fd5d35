# frozen_string_literal: true

module Pando
  module Doctor
    module LazyState
      # The objects of one class that one line made and that are still alive, counted by the request that made them.
      #
      # @api private
      class Group
        # The VM's inline caches: each request fills those it comes by, and no line of the application is to blame.
        CACHES = %i[callcache callinfo constcache].freeze
        # What code becomes when it is loaded.
        CODE = %i[iseq ment cref ast].freeze

        # @return [String] of the innermost frame
        attr_reader :file
        # @return [Integer]
        attr_reader :line
        # @return [Array(String, Integer), nil] the innermost line of the application
        attr_reader :origin
        # @return [String, Symbol] a Symbol for what only the VM sees
        attr_reader :name
        # @return [Array<Integer>] objects, bytes of each request
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

        # @param window [Integer] @param bytes [Integer]
        def add(window, bytes)
          @objects[window] += 1
          @bytes[window] += bytes
        end

        # @return [Array(String, Integer)] the line to show
        def place = origin || [file, line]

        # An open file, socket or pipe is the affair of those who count descriptors.
        def holds_descriptors! = @descriptors = true
        def descriptors? = @descriptors

        def cache? = CACHES.include?(name)
        # The last one is what a look at code makes.
        def code? = CODE.include?(name) || name == "RubyVM::InstructionSequence"

        # Of the VM itself: no object of the application's making.
        def vm? = name.is_a?(Symbol) || name.start_with?("(internal ")

        # Kept by the requests behind the first one too. What only the last one holds may be let go by the next.
        def grows? = later.size >= 2 && later.all?(&:positive?)

        # Built once, by the first requests.
        def lazy? = lasting(@objects).any?(&:positive?) && (later.empty? ? @objects.drop(1).all?(&:zero?) : !grows?)

        # @return [Integer] objects that were built once
        def lasting_objects = lasting(@objects).sum
        # @return [Integer] their bytes
        def lasting_bytes = lasting(@bytes).sum
        # @return [Integer] objects that a later request adds
        def objects_per_request = per_request(@objects)
        # @return [Integer] bytes that a later request adds
        def bytes_per_request = per_request(@bytes)

        private

        # Of a single request nobody knows what the next one would let go.
        def lasting(counts) = counts.size == 1 ? counts : counts[0..-2]
        def later = @objects[1..-2] || []

        def per_request(counts)
          counts = counts[1..-2] || []
          counts.empty? ? 0 : (counts.sum.to_f / counts.size).ceil
        end
      end
    end
  end
end
