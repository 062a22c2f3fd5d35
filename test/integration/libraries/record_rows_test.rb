# frozen_string_literal: true

require_relative "arrivals"
require_relative "rows_app"
require "support/mariadb_server"

# What is behind ActiveRecord and Sequel: the drivers of MySQL, and the cache and the queue of Rails.
class RecordRowsTest < Minitest::Test
  include RowsApp
  include Arrivals

  ROWS = %w[mysql2 solid_cache solid_queue trilogy].freeze

  def test_each_works_in_the_third_generation_with_connections_of_its_own
    start(ROWS)
    assert_third_generation(ROWS)
    checked = @server.wait_past("libraries.checked")

    assert_match(/\bsequel\b/, checked["handled"])
    assert_empty checked["refused"]
  end

  private

  def group = "records"
  def obstacle = Support::MariaDBServer.obstacle
  def prepare = @mariadb = Support::MariaDBServer.new(@folder).start
  def clean_up = @mariadb&.stop

  def environment
    { "APP_MARIADB" => @mariadb.socket_path,
      "DATABASE_URL" => "sqlite3:#{File.join(@folder, "rows.sqlite3")}?timeout=5000" }
  end
end
