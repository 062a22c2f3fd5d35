# frozen_string_literal: true

require_relative "rows_app"
require "pando/fork_safety/libraries/known"

# What Rails loads, native libraries and schedulers.
class OtherRowsTest < Minitest::Test
  include RowsApp

  FINE = %w[bootsnap mini_mime nokogiri google-protobuf ffi timeout async].freeze
  COUNTED = 3

  def test_each_works_in_the_third_generation
    start(FINE)
    uses = third_generation_uses(FINE)

    uses.each { |use| assert use["result"]["said"], "#{use["row"]}: #{use["result"]}" }
    assert_empty @server.events("finding.reported")
  end

  def test_semian_counts_each_worker_once
    start(%w[semian semian's-end], workers: COUNTED)
  end

  private

  def group = "other"
  def environment = { "APP_FOLDER" => @folder }

  # Each answer is the last part of the path.
  def answers
    { %r{\A/echo/} => ->(record, _socket) { record.path[%r{[^/]+\z}] } }
  end
end
