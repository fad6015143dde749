"""The desktops that the bench logs in to: their packages, how a session starts, and the windows that
complete a login."""

from dataclasses import dataclass, field

# SMALL also contains the libraries that headstart's package needs and that not every system has.
SMALL = """
    systemd systemd-sysv dbus dbus-user-session libpam-systemd login passwd procps perl
    libjson-c5 libinih1
""".split()

# What each desktop of the installer has around it.
SERVICES = SMALL + """
    udev cron rsyslog polkitd pkexec network-manager modemmanager udisks2 upower accountsservice
    avahi-daemon cups-daemon rtkit colord packagekit
    x11-common libgl1-mesa-dri
    xdg-user-dirs at-spi2-core dconf-gsettings-backend desktop-base
    librsvg2-common fonts-dejavu fonts-noto-core fonts-liberation hicolor-icon-theme
    preload
""".split()

X_SERVER = "xvfb xinit dbus-x11".split()

# The packages of the installer's choice "Xfce", without those that take no part in a boot or login,
# plus a virtual X server. Icons, themes, gvfs, portals and applets stay, because they make a login
# slow.
XFCE = SERVICES + X_SERVER + """
    xfce4-session xfce4-panel xfwm4 xfdesktop4 xfce4-settings xfconf xfce4-terminal xfce4-appfinder
    xfce4-notifyd xfce4-power-manager xfce4-pulseaudio-plugin xfce4-whiskermenu-plugin
    thunar thunar-volman gvfs gvfs-daemons gvfs-backends network-manager-gnome
    xdg-desktop-portal xdg-desktop-portal-gtk
    pulseaudio pavucontrol policykit-1-gnome light-locker
    adwaita-icon-theme tango-icon-theme greybird-gtk-theme gnome-themes-extra
""".split()

# For recorded sessions (tests/bench/sessions): a second desktop, and applications people use.
SESSIONS = XFCE + """
    lxqt-session lxqt-panel lxqt-config lxqt-notificationd lxqt-policykit lxqt-qtplugin lxqt-runner
    lxqt-themes lxqt-globalkeys lxqt-powermanagement pcmanfm-qt openbox qterminal featherpad
    lximage-qt qpdfview breeze-icon-theme
    mousepad ristretto galculator abiword gnumeric geany atril xarchiver claws-mail gimp
    transmission-gtk dillo
""".split()

# The installer's choice "GNOME" and "KDE Plasma", without the applications that no login starts.
GNOME = SERVICES + """
    gnome-shell gnome-session gnome-settings-daemon gnome-keyring gnome-terminal nautilus mutter
    gvfs gvfs-daemons gvfs-backends xdg-desktop-portal xdg-desktop-portal-gnome xwayland
    pipewire pipewire-pulse wireplumber ibus gsettings-desktop-schemas evolution-data-server
    adwaita-icon-theme gnome-themes-extra gnome-shell-extension-prefs network-manager-gnome
""".split()

PLASMA = SERVICES + X_SERVER + """
    plasma-desktop plasma-workspace kwin-x11 dolphin konsole breeze breeze-icon-theme powerdevil
    plasma-nm plasma-pa kscreen polkit-kde-agent-1 kde-config-screenlocker kio-extras
    frameworkintegration xdg-desktop-portal xdg-desktop-portal-kde bluedevil systemsettings
    libkf5globalaccel-bin kactivitymanagerd pipewire pipewire-pulse wireplumber plasma-integration
    milou sddm-theme-breeze
""".split()


@dataclass(frozen=True)
class Desktop:
    name: str  # XDG_SESSION_DESKTOP
    packages: list
    start: str  # the command that starts the session
    windows: tuple  # classes of the windows that complete the login, in lower case
    applications: dict  # name -> title and command of what starts with the session
    session: str = "session-desktop"  # file in tests/bench/tree
    type: str = "x11"
    files: dict = field(default_factory=dict)  # further files of the tree


# The shell has no screen here. In unsafe mode it says on D-Bus which windows it has.
GNOME_SHELL = """[Service]
ExecStart=
ExecStart=/usr/bin/gnome-shell --wayland --headless --virtual-monitor 1280x800 --unsafe-mode
"""

DESKTOPS = {
    "xfce": Desktop("xfce", XFCE, "startxfce4",
                    ("xfce4-panel", "xfdesktop", "xfce4-terminal", "thunar"),
                    {"terminal": ("Terminal at login", "xfce4-terminal"),
                     "thunar": ("File manager at login", "thunar")}),
    "lxqt": Desktop("lxqt", SESSIONS, "startlxqt", ("lxqt-panel", "pcmanfm-qt", "qterminal"),
                    {"terminal": ("Terminal at login", "qterminal")}),
    "gnome": Desktop("gnome", GNOME, "gnome-session", ("gnome-terminal-server", "org.gnome.nautilus"),
                     {"terminal": ("Terminal at login", "gnome-terminal"),
                      "nautilus": ("File manager at login", "nautilus --new-window")},
                     session="session-gnome", type="wayland",
                     files={"etc/systemd/user/org.gnome.Shell@wayland.service.d/bench.conf":
                            GNOME_SHELL}),
    "plasma": Desktop("KDE", PLASMA, "startplasma-x11", ("plasmashell", "dolphin", "konsole"),
                      {"terminal": ("Terminal at login", "konsole"),
                       "dolphin": ("File manager at login", "dolphin")}),
}
