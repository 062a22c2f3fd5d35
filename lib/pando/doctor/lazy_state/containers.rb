# frozen_string_literal: true

module Pando
  module Doctor
    module LazyState
      # How many entries each Array, Hash and long String has, by its address: what grows by numbers, symbols or
      # things that existed before makes no object that a trace of allocations would show.
      #
      # @api private
      class Containers
        # Shorter strings are not followed.
        LONG = 1024

        SIZES = { Array => Array.instance_method(:size), Hash => Hash.instance_method(:size) }.freeze
        BYTES = String.instance_method(:bytesize)
        private_constant :SIZES, :BYTES

        # What a container had at first and gained in each window.
        Growth = Struct.new(:address, :before, :gains) do
          # @return [Boolean] by each request after the first one
          def steady? = gains.size > 3 && gains[1..-2].all?(&:positive?)
          # @return [Boolean] by the first one alone
          def once? = gains.first.positive? && gains.drop(1).all?(&:zero?)

          # @return [Integer] entries (bytes of a String): of each request, or of the first one
          def gain = steady? ? (gains[1..-2].sum.to_f / (gains.size - 2)).ceil : gains.first
        end

        def initialize
          @first = nil
          @last = nil
          @growths = {}
          @windows = 0
        end

        # Counts again: once before the first window and at the end of each one.
        # @return [nil]
        def count
          sizes = {}
          each_size { |one, size| sizes[Origins.address(one)] = size }
          compare(sizes) if @last
          @first ||= sizes
          @last = sizes
          nil
        end

        # @return [Array<Growth>] of those that were there from the beginning and have only grown
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
