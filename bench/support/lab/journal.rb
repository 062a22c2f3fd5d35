# frozen_string_literal: true

require "support/lab/meter"

module Bench
  module Lab
    # What the meters of one run wrote, read when the server has ended.
    class Journal
      # One request as its process saw it.
      #
      # @!attribute sequence [Integer] its number at the client; 0 for the benchmark's own
      # @!attribute process [Lived]
      # @!attribute number [Integer] which of that process's requests it was, from 1
      # @!attribute cpu [Float] seconds
      Served = Struct.new(:sequence, :process, :number, :cpu)

      # One process that served.
      #
      # @!attribute ancestors [Integer] requests that those it was forked from had served: 0 unless it was reforked
      # @!attribute warmth [Array<Hash>] number:, code: in bytes, compiled: methods, minor:, major: collections
      Lived = Struct.new(:pid, :ancestors, :warmth) do
        def reforked? = ancestors.positive?
      end

      WARMTH = %i[number code compiled minor major].freeze

      # @return [Array<Lived>]
      attr_reader :processes

      # @return [Array<Served>] by their number at the client
      attr_reader :requests

      def initialize(folder)
        @processes = []
        @requests = Dir[File.join(folder, "*.journal")].flat_map { |path| read(path) }.sort_by(&:sequence)
      end

      private

      def read(path)
        process = lived(path.delete_suffix(".journal"))
        bytes = File.binread(path)
        (bytes.bytesize / Meter::SIZE).times.map do |index|
          sequence, number, before, after = bytes.byteslice(index * Meter::SIZE, Meter::SIZE).unpack(Meter::RECORD)
          Served.new(sequence, process, number, (after - before) / 1e9)
        end
      end

      def lived(base)
        pid, ancestors = File.basename(base).split("-").map(&:to_i)
        warmth = File.exist?("#{base}.warmth") ? File.readlines("#{base}.warmth") : []
        Lived.new(pid, ancestors, warmth.map { |line| WARMTH.zip(line.split.map(&:to_i)).to_h })
             .tap { |process| @processes << process }
      end
    end
  end
end
