# frozen_string_literal: true

module Pando
  module Doctor
    module LazyState
      # Counts the entries of each Array, Hash and long String, by address. A container that grows by numbers, symbols
      # or older objects has no new object that a trace of allocations would show.
      #
      # @api private
      class Containers
        # Bytes; shorter strings are not counted.
        LONG = 1024

        SIZES = { Array => Array.instance_method(:size), Hash => Hash.instance_method(:size) }.freeze
        BYTES = String.instance_method(:bytesize)
        private_constant :SIZES, :BYTES

        # A container's entries before the first window, and its gain in each window.
        Growth = Struct.new(:address, :before, :gains) do
          # @return [Boolean] whether each request after the first one adds entries
          def steady? = gains.size > 3 && gains[1..-2].all?(&:positive?)
          # @return [Boolean] whether only the first one does
          def once? = gains.first.positive? && gains.drop(1).all?(&:zero?)

          # @return [Integer] entries (bytes of a String) that each request, or the first one, adds
          def gain = steady? ? (gains[1..-2].sum.to_f / (gains.size - 2)).ceil : gains.first
        end

        def initialize
          @first = nil
          @last = nil
          @growths = {}
          @windows = 0
        end

        # Called before the first window and at the end of each.
        # @return [nil]
        def count
          sizes = {}
          each_size { |one, size| sizes[Origins.address(one)] = size }
          compare(sizes) if @last
          @first ||= sizes
          @last = sizes
          nil
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
