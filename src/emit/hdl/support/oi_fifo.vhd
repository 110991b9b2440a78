-- oi_fifo.vhd: beats that wait for a consumer. Without any, one goes straight through. Whether there is room does not
-- depend on what the consumer does in the same clock.
library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;

entity oi_fifo is
  generic (
    depth : positive;
    width : positive
  );
  port (
    clk       : in  std_logic;
    rst       : in  std_logic;
    in_data   : in  std_logic_vector(width - 1 downto 0);
    in_valid  : in  std_logic;
    in_ready  : out std_logic := '0';
    out_data  : out std_logic_vector(width - 1 downto 0) := (others => '0');
    out_valid : out std_logic := '0';
    out_ready : in  std_logic
  );
end entity;

architecture rtl of oi_fifo is
  type beats_t is array (0 to depth - 1) of std_logic_vector(width - 1 downto 0);
  signal beats    : beats_t := (others => (others => '0')); -- the first is the oldest
  signal count    : natural range 0 to depth := 0;
  signal has_room : std_logic := '1';
  signal is_empty : std_logic := '1';
begin
  has_room  <= '0' when count = depth else '1';
  is_empty  <= '1' when count = 0 else '0';
  in_ready  <= has_room;
  out_valid <= in_valid and has_room when is_empty = '1' else '1';
  out_data  <= in_data when is_empty = '1' else beats(0);

  process (clk)
    variable left : natural range 0 to depth;
  begin
    if rising_edge(clk) then
      left := count;
      if out_ready = '1' and is_empty = '0' then
        for i in 0 to depth - 2 loop
          beats(i) <= beats(i + 1);
        end loop;
        left := left - 1;
      end if;
      if in_valid = '1' and has_room = '1' and not (is_empty = '1' and out_ready = '1') then
        for i in 0 to depth - 1 loop
          if i = left then
            beats(i) <= in_data;
          end if;
        end loop;
        left := left + 1;
      end if;
      if rst = '1' then
        left := 0;
      end if;
      count <= left;
    end if;
  end process;
end architecture;

-- What a step leaves for the next one: at most one beat, and one to begin with.
library ieee;
use ieee.std_logic_1164.all;

entity oi_state is
  generic (
    width : positive;
    first : std_logic_vector
  );
  port (
    clk       : in  std_logic;
    rst       : in  std_logic;
    in_data   : in  std_logic_vector(width - 1 downto 0);
    in_valid  : in  std_logic;
    in_ready  : out std_logic := '0';
    out_data  : out std_logic_vector(width - 1 downto 0) := (others => '0');
    out_valid : out std_logic := '0';
    out_ready : in  std_logic
  );
end entity;

architecture rtl of oi_state is
  signal beat    : std_logic_vector(width - 1 downto 0) := first;
  signal is_full : std_logic := '1';
begin
  in_ready  <= not is_full;
  out_valid <= is_full or in_valid;
  out_data  <= beat when is_full = '1' else in_data;

  process (clk)
  begin
    if rising_edge(clk) then
      if is_full = '1' then
        is_full <= not out_ready;
      elsif in_valid = '1' then
        beat    <= in_data;
        is_full <= not out_ready;
      end if;
      if rst = '1' then
        beat    <= first;
        is_full <= '1';
      end if;
    end if;
  end process;
end architecture;
