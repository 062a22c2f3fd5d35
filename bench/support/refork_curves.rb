# frozen_string_literal: true

module Bench
  # The recordings of bench/refork-curves for one app: memory and CPU time by a generation's age and by its warmth, the
  # number of requests that its ancestors had served. Values in between are interpolated linearly in the age and in the
  # logarithm of the warmth. Beyond the oldest age, memory stays constant; beyond the warmest ancestor, nothing gets
  # warmer.
  #
  # The curves were recorded at different times, with different other work on the machine. So CPU time is relative to
  # the curve's own steady state: a request there costs the same in all curves, and only the beginnings differ.
  class ReforkCurves
    FOLDER = File.expand_path("../curves", __dir__)

    # The age at which the steady state has been reached.
    STEADY = 800

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
      @each = @curves.values.map { |points| rate(points) }.sort[@curves.size / 2]
    end

    # @return [Float] bytes
    def pss(warmth, age) = blend(warmth) { |points| between(points, [age, points.last.age].min, :pss) }

    # @return [Float] seconds of CPU time of a worker since its fork
    def cpu(warmth, age)
      early = [age, STEADY].min
      blend(warmth) { |points| (between(points, early, :cpu) / rate(points)) + age - early } * @each
    end

    # @return [Float] seconds of CPU time that a worker needs for that many requests in the steady state
    def steady_cpu(requests) = requests * @each

    private

    # @return [Float] seconds per request, in the steady state
    def rate(points)
      steady = points.select { |point| point.age >= STEADY }
      first, last = (steady.size > 1 ? steady : points).minmax_by(&:age)
      (last.cpu - first.cpu) / (last.age - first.age)
    end

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
