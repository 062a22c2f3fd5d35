# frozen_string_literal: true

require "test_helper"
require "pando/admin/exposition"
require "pando/cluster/monitor"
require "pando/exporters/exporter"

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
