# frozen_string_literal: true

module Pando
  module Cluster
    module Canary
      # What the requests of some workers took, by the age that the worker had reached: a newborn faults and compiles,
      # so it is compared with newborns. Plain numbers.
      #
      # @api private
      class Curve
        # The first request, the second, then 2, 4, ... 128: up to 256, all that is measured one by one.
        BANDS = 9

        # How many requests took how long, by age: an Array of BANDS Hashes, code => count. A code is eight steps an
        # octave of microseconds (ext/pando/sys/measure.h).
        attr_reader :cpu, :time
        attr_reader :requests, :failures
        # Workers that ended as nobody wanted.
        attr_reader :crashes
        # The most page faults of a worker at its 1st, 2nd, 4th, ... request; 0: nobody came so far.
        attr_reader :faults

        def initialize
          @requests = @failures = @crashes = 0
          @cpu = Array.new(BANDS) { Hash.new(0) }
          @time = Array.new(BANDS) { Hash.new(0) }
          @faults = Array.new(BANDS, 0)
        end

        # @param codes [String] of the first jobs of a worker, in their order
        # @return [Array<Hash>] as #cpu
        def self.bands(codes, into = Array.new(BANDS) { Hash.new(0) })
          codes.each_byte.first(1 << (BANDS - 1)).each_with_index do |code, age|
            into[age.bit_length][code] += 1 unless code.zero?
          end
          into
        end

        # @return [Float] microseconds
        def self.microseconds(code)
          octave, step = (code - 1).divmod(8)
          (2.0**octave) * (1 + (step / 8.0))
        end

        # A worker, as its row tells of it. A job that ends meanwhile may be in one of its numbers and not yet in
        # another, and more failures than requests would be beyond all chance.
        # @param row [#requests, #failures, #first_jobs, #faults]
        # @param jobs [Boolean] with what they took
        # @return [self]
        def add(row, jobs: true)
          requests = row.requests
          @requests += requests
          @failures += [row.failures, requests].min
          add_jobs(*row.first_jobs) if jobs
          add_faults(row.faults)
          self
        end

        def add_crash = @crashes += 1

        # @param other [Curve]
        # @return [self]
        def merge(other)
          @requests += other.requests
          @failures += other.failures
          @crashes += other.crashes
          merge_bands(@cpu, other.cpu)
          merge_bands(@time, other.time)
          add_faults(other.faults)
          self
        end

        # @param other [Curve]
        # @return [Curve] as many requests, failures and crashes as this one has; what a request takes is the other's
        def with_pace_of(other)
          dup.take_pace(other)
        end

        protected

        def take_pace(other)
          @cpu = other.cpu
          @time = other.time
          @faults = other.faults
          self
        end

        private

        def add_jobs(cpu, time)
          Curve.bands(cpu, @cpu)
          Curve.bands(time, @time)
        end

        def add_faults(others)
          @faults = @faults.zip(others).map { |mine, other| [mine, other.to_i].max }
        end

        def merge_bands(mine, others)
          mine.zip(others) { |band, other| band.merge!(other) { |_, one, two| one + two } }
        end
      end
    end
  end
end
