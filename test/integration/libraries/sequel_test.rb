# frozen_string_literal: true

require_relative "library_app"
require "support/postgresql"

# Sequel with PostgreSQL: Pando closes its connections before each fork.
class SequelTest < Minitest::Test
  include LibraryApp

  LIBRARIES = %w[pg sequel].freeze

  def test_each_worker_has_a_backend_of_its_own
    survive_reforks do |generation|
      expected = connections_of(generation)
      wait_until(message: -> { "backends #{expected}, not #{backends}" }) { backends == expected }
    end
    assert_match(/\Asequel /, verdicts["handled"])
    assert_empty verdicts["refused"]
  end

  private

  def app = "sequel"
  def obstacle = Support::PostgreSQL.obstacle
  def prepare = @postgresql = Support::PostgreSQL.new(File.join(@folder, "pg")).start
  def clean_up = @postgresql&.stop
  def environment = { "PGHOST" => @postgresql.folder }

  def backends
    @postgresql.rows("SELECT pid FROM pg_stat_activity WHERE application_name = 'pando-sequel'").flatten.sort
  end
end
