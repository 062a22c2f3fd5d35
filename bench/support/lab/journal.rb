# frozen_string_literal: true

require "support/lab/meter"

module Bench
  module Lab
    # The records of one run's meters, read when the server has ended.
    class Journal
      # One request as its process saw it.
      #
      # @!attribute sequence [Integer] number that the client gave it; 0 for requests of the benchmark itself
      # @!attribute process [Lived]
      # @!attribute number [Integer] its number among the requests of that process, from 1
      # @!attribute cpu [Float] seconds
      Served = Struct.new(:sequence, :process, :number, :cpu)

      # One process that served requests.
      #
      # @!attribute ancestors [Integer] requests that the process's ancestors had served: 0 unless it was reforked
      # @!attribute warmth [Array<Hash>] number:, code: in bytes, compiled: methods, minor:, major: collections
      Lived = Struct.new(:pid, :ancestors, :warmth) do
        def reforked? = ancestors.positive?
      end

      WARMTH = %i[number code compiled minor major].freeze

      # @return [Array<Lived>]
      attr_reader :processes

      # @return [Array<Served>] by the client's number
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
