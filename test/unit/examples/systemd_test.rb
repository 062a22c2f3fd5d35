# frozen_string_literal: true

require "test_helper"
require "support/checkout"

# The units of docs/systemd.md fit each other, and the one in the folder is the one on the page.
class SystemdExamplesTest < Minitest::Test
  PAGE = File.read(Support::Checkout.path("docs/systemd.md"))
  UNITS = PAGE.scan(/^```ini\n(.*?)^```/m).flatten.freeze
  EXAMPLE = File.read(Support::Checkout.path("examples/systemd/pando.service"))

  # @return [String] the text of the unit with this suffix on the page
  def unit(suffix) = UNITS.grep(%r{\A# /etc/systemd/system/\S+\.#{suffix}\b}).fetch(0)
  def title(unit, suffix) = unit[%r{\A# /etc/systemd/system/(\S+)\.#{suffix}\b}, 1]
  def values(unit, key) = unit.scan(/^#{key}=(.*)$/).flatten

  def test_the_page_shows_the_example
    assert_equal(EXAMPLE, unit("service"))
  end

  # Else systemd would start none, unless `Service=` says which.
  def test_the_socket_starts_the_service_of_its_name
    assert_equal(title(unit("service"), "service"), title(unit("socket"), "socket"))
  end

  # systemd removes that folder when the service stops, and would not make the socket anew.
  def test_the_sockets_file_outlives_the_service
    folders = values(EXAMPLE, "RuntimeDirectory").map { |folder| "/run/#{folder}/" }
    files = values(unit("socket"), "ListenStream").grep(%r{\A/})

    refute_empty(files)
    assert_empty(files.select { |file| file.start_with?(*folders) })
  end

  # The configuration may ask for it, and the command reads the configuration.
  def test_a_reload_has_the_environment_of_the_start
    start, reload = %w[ExecStart ExecReload].map { |key| values(EXAMPLE, key).fetch(0).split }

    assert_equal(start, reload - ["reload"])
  end
end
