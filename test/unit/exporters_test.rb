# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"
require "pando/exporters"

class ExportersReportedTest < Minitest::Test
  include Pando

  def setup = @notes = Cluster::ServiceNotes.create
  def teardown = @notes.close

  def test_the_first_report_tells_from_where_to_count
    reported = Exporters::Reported.new(@notes)

    assert_empty(update(reported, { a: 1 } => 5))
    assert_equal([[{ a: 1 }, 3]], update(reported, { a: 1 } => 8))
    assert_empty(update(reported, { a: 1 } => 8))
    assert_equal([[{ a: 1 }, 1], [{ a: 2 }, 4]], update(reported, { a: 1 } => 9, { a: 2 } => 4))
  end

  def test_a_successor_goes_on
    update(Exporters::Reported.new(@notes), { pool: "web", status: "2xx" } => 5, {} => 1.5)

    assert_equal([[{ pool: "web", status: "2xx" }, 2]],
                 update(Exporters::Reported.new(@notes), { pool: "web", status: "2xx" } => 7, {} => 1.5))
  end

  def test_histograms
    update(Exporters::Reported.new(@notes), { pool: "web" } => Histogram.new([1, 2], 0.5))
    (labels, times), = update(Exporters::Reported.new(@notes), { pool: "web" } => Histogram.new([1, 3, 1], 0.75))

    assert_equal([{ pool: "web" }, [0, 1, 1], 0.25], [labels, times.counts, times.sum])
  end

  def test_gauges_are_none_of_its_business
    gauge = Admin::Family.new("pando_things", :gauge, nil, "Things.", { {} => 4 })

    Exporters::Reported.new(@notes).update([gauge]) { flunk }
    assert_equal("{}", @notes.text)
  end

  private

  # @return [Array<Array(Hash, Object)>] what has been added
  def update(reported, samples)
    added = []
    reported.update([Admin::Family.new("pando_things_total", :counter, nil, "Things.", samples)]) do |_, labels, more|
      added << [labels, more]
    end
    added
  end
end

# Two metrics with one name would be added up.
class ExportersNamesTest < Minitest::Test
  include Pando

  def test_statsd_has_a_name_for_each_metric
    assert_distinct(names(Exporters::StatsD, :dotted))
  end

  def test_opentelemetry_has_a_name_for_each_metric
    names = names(Exporters::OpenTelemetry, :dotted)

    assert_distinct(names)
    assert_equal(%w[pando.worker_gc pando.worker_gc_seconds], names.grep(/worker_gc/))
    assert_includes(names, "pando.worker_cpu")
  end

  def test_yabeda_has_a_name_for_each_metric
    assert_distinct(names(Exporters::Yabeda, :name_of))
  end

  private

  # @return [Array<String>] of all metrics
  def names(exporter, method)
    Admin::Metrics.known.map { |one| exporter.allocate.send(method, one) }
  end

  def assert_distinct(names) = assert_empty(names.tally.select { |_, count| count > 1 })
end

# What all exporters do, and StatsD's without its gem: test/integration/exporters_test.rb has the real ones.
class ExportersStatsDTest < Minitest::Test
  include Pando

  Client = Struct.new(:sent) do
    def gauge(*sent, tags:) = self.sent << [*sent, tags]
    alias_method :count, :gauge
  end

  def setup
    @client = Client.new([])
    @exporter = Exporters::StatsD.new(@client)
  end

  def test_names_and_tags
    @exporter.send(:gauge, family("pando_workers_ready", :gauge), { pool: "web" }, 2)
    @exporter.send(:counter, family("pando_requests_total", :counter), { pool: "web", status: "2xx" }, 3)

    assert_equal([["pando.workers_ready", 2, ["pool:web"]], ["pando.requests", 3, ["pool:web", "status:2xx"]]],
                 @client.sent)
  end

  # No process of a pool may be measured yet, and a broker may be unable to tell.
  def test_a_gauge_that_is_unknown_is_not_sent
    reporting do
      export("pando_memory_pss_bytes", { role: "worker" } => 5)
      export("pando_memory_pss_bytes", {})
    end

    assert_equal([["pando.memory_pss_bytes", 5, ["role:worker"]]], @client.sent)
  end

  # No event tells the survey here of processes that come and go.
  def test_each_report_has_the_survey_look_for_new_processes
    survey = Minitest::Mock.new
    survey.expect(:look_soon, nil)
    monitor = Struct.new(:snapshot).new(Admin::Snapshot.new([]))
    reporting { Admin::Metrics.stub(:families, []) { @exporter.send(:ask, monitor, survey) } }

    assert_mock(survey)
  end

  def test_a_histogram
    times = Histogram.new([0, 98, 0, 0, 0, 2], 1.5)
    @exporter.send(:histogram, family("pando_wait_seconds", :histogram), {}, times)
    names, values, = @client.sent.transpose

    assert_equal(%w[count sum p50 p95 p99], names.map { |name| name.delete_prefix("pando.wait_seconds.") })
    assert_equal([100, 1.5, Histogram.edge(1), Histogram.edge(1), Histogram.edge(5)], values)
  end

  # For systems that take each time by itself.
  def test_single_times_have_the_number_and_the_sum
    counts = Array.new(Histogram::BUCKETS, 0)
    counts[40] = 3
    counts[41] = 1
    times = []
    @exporter.send(:each_time, Histogram.new(counts, 0.0062)) { |seconds| times << seconds }

    assert_equal([4, 2], [times.size, times.uniq.size])
    assert_in_delta(0.0062, times.sum, 0.0000001)
  end

  def test_wrong_arguments
    error = assert_raises(ArgumentError) { Exporters::StatsD.new(Object.new) }
    assert_match(/dogstatsd-ruby.*not Object/, error.message)
    error = assert_raises(ArgumentError) { Exporters::StatsD.new(@client, every: 0) }
    assert_match(/every: .*not 0/, error.message)
  end

  private

  def reporting
    notes = Cluster::ServiceNotes.create
    @exporter.instance_variable_set(:@reported, Exporters::Reported.new(notes))
    yield
  ensure
    notes.close
  end

  def export(name, samples)
    @exporter.send(:export, [Admin::Family.new(name, :gauge, nil, "Help.", samples)])
  end

  def family(name, type) = Admin::Family.new(name, type, name[/seconds/], "Help.", {})
end
