# frozen_string_literal: true

# The suite reforks between its tests (docs/testing.md). Require this file before the app:
#
#   require "minitest/autorun"
#   require "pando/minitest"
# On other systems than Linux this file changes nothing.
require "minitest"
require "pando/platform"
require "pando/testing"
if Pando::Platform.linux?
  require "pando/testing/minitest_plug"
  Pando::Testing::MinitestPlug.install
else
  warn "pando: the suite runs without reforks: they need Linux, and this is #{Pando::Platform.name}"
end
