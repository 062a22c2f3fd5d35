# frozen_string_literal: true

module Bench
  # What bench/refork-curves has recorded of one app: memory and CPU time by a generation's age, for generations whose
  # ancestors had served so many requests (their warmth). In between: straight lines in the age, and in the logarithm
  # of the warmth. Beyond the oldest age memory stays as it is, and CPU time goes on as it did; beyond the warmest
  # ancestor nothing is warmer.
  class ReforkCurves
    FOLDER = File.expand_path("../curves", __dir__)

    Point = Struct.new(:age, :pss, :cpu)

    # @return [Array<String>] names of the apps
    def self.names = Dir.children(FOLDER).grep(/\.csv\z/).map { |name| File.basename(name, ".csv") }.sort

    # @return [ReforkCurves]
    def self.load(name) = new(File.readlines(File.join(FOLDER, "#{name}.csv"), chomp: true).grep(/\A\d/))

    # @param rows [Array<String>] "warmth,age,pss,cpu"
    def initialize(rows)
      @curves = rows.map { |row| row.split(",").map(&:to_f) }.group_by(&:first)
                    .transform_values { |points| points.map { |_, *point| Point.new(*point) } }
      @warmths = @curves.keys.sort
    end

    # @return [Float] bytes
    def pss(warmth, age) = blend(warmth) { |points| between(points, [age, points.last.age].min, :pss) }

    # @return [Float] seconds of a worker since its fork
    def cpu(warmth, age) = blend(warmth) { |points| between(points, age, :cpu) }

    private

    def blend(warmth)
      warmth = [warmth, @warmths.last].min
      above = @warmths.index { |known| known >= warmth }
      return yield(@curves[@warmths[above]]) if @warmths[above] == warmth

      low, high = @warmths[above - 1, 2]
      part = Math.log((1 + warmth) / (1 + low)) / Math.log((1 + high) / (1 + low))
      (yield(@curves[low]) * (1 - part)) + (yield(@curves[high]) * part)
    end

    def between(points, age, what)
      above = points.index { |point| point.age >= age && point.age.positive? } || (points.size - 1)
      low, high = points[above - 1, 2]
      low[what] + ((high[what] - low[what]) * (age - low.age) / (high.age - low.age))
    end
  end
end
